"""Short representations of objects, as text and as HTML."""

from abc import abstractmethod
from html import escape


def printable(text: str) -> str:
    """Return a text with escapes in place of characters that UTF-8 has not, of bytes that could not be decoded."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


class Displayed:
    """An object that is shown by a few entries, which take no time to compute: as text, and in notebooks as a table."""

    @abstractmethod
    def _entries(self) -> dict[str, str]:
        """Return the entries that are shown, by name."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={text}' for name, text in self._shown())})"

    def _repr_html_(self) -> str:
        rows = (f"<tr><th>{escape(name)}</th><td>{escape(text)}</td></tr>" for name, text in self._shown())
        return f"<table><caption>{escape(type(self).__name__)}</caption>{''.join(rows)}</table>"

    def _shown(self) -> list[tuple[str, str]]:
        """Return the entries with characters that can be printed everywhere."""
        return [(printable(name), printable(text)) for name, text in self._entries().items()]
