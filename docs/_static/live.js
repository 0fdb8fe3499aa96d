// The page "Draw a digit": takes drawings, and shows what live.py computes of them. All files come from this site.
(() => {
  // As the data set has it: of a picture of 32 x 32 points, each of 8 x 8 pixels counts those in its block of 4 x 4.
  const FILES = "_static/live/", SIDE = 8, BLOCK = 4, WIDTH = SIDE * BLOCK, PEN = 2.2;
  const page = document.getElementById("live"), part = (name) => page.querySelector(`.live-${name}`);
  const points = new Uint8Array(WIDTH * WIDTH);
  let live, last = null, number = 0, waiting = false;

  const say = (words) => { part("state").textContent = words; };
  const of = (x, y) => SIDE * Math.floor(y / BLOCK) + Math.floor(x / BLOCK);

  const script = (source) => new Promise((resolve, reject) => {
    const onerror = () => reject(new Error(`${source} cannot be read`));
    document.head.append(Object.assign(document.createElement("script"), {src: source, onload: resolve, onerror}));
  });

  async function start() {
    part("start").disabled = true;
    try {
      say("Loading Python …");
      await script(`${FILES}pyodide.js`);
      const python = await loadPyodide({indexURL: FILES});
      say("Loading NumPy and SciPy …");
      await python.loadPackage(["numpy", "scipy"], {messageCallback() {}});
      say("Loading mopn and its model …");
      for (const name of ["mopn.zip", "digits.npz", "rows.npy", "certificate.json", "live.py"]) {
        const file = await (await fetch(FILES + name)).arrayBuffer();
        python.FS.writeFile(name, new Uint8Array(file));
      }
      python.runPython('import sys; sys.path[:0] = ["mopn.zip", "."]');
      live = python.pyimport("live");
    } catch (error) {
      part("start").disabled = false;
      const why = location.protocol === "file:" ? "pages opened as files may not load others; serve the site" : error.message;
      return say(`It could not be loaded: ${why}.`);
    }
    certify(JSON.parse(live.certificate));
    part("start").hidden = true;
    part("app").hidden = false;
    say("");
    example();
  }

  function certify({units, objective, gap, relative_gap: relative, proof}) {
    part("certificate").textContent = `This model has ${units} units, and an objective of ${objective.toPrecision(5)}. ` +
      `Proven (${proof}): no network of any size has an objective lower than that by more than ${gap.toPrecision(2)}, ` +
      `or ${(100 * relative).toPrecision(2)}%.`;
  }

  function pixels() {
    const counts = new Array(SIDE * SIDE).fill(0);
    points.forEach((point, i) => { counts[of(i % WIDTH, Math.floor(i / WIDTH))] += point; });
    return counts;
  }

  // Shades are opacities, which suit light pages and dark ones.
  function paint(canvas, shades) {
    const image = new ImageData(SIDE, SIDE);
    shades.forEach(([red, green, blue, opacity], i) => image.data.set([red, green, blue, 255 * opacity], 4 * i));
    canvas.getContext("2d").putImageData(image, 0, 0);
  }

  function show() {
    waiting = false;
    const drawn = pixels(), answer = JSON.parse(live.explain(drawn));
    paint(part("drawing"), drawn.map((count) => [0, 0, 0, count / BLOCK ** 2]));
    const largest = Math.max(...answer.shap.map(Math.abs));
    paint(part("shap"), answer.shap.map((value) => [...(value > 0 ? [214, 39, 40] : [31, 119, 180]), Math.abs(value) / largest]));
    part("classes").replaceChildren(...answer.probabilities.map((probability, label) => {
      const row = document.createElement("tr");
      row.className = label === answer.label ? "live-best" : "";
      row.style.setProperty("--probability", probability);
      row.innerHTML = `<th scope="row">${label}</th><td></td><td>${(100 * probability).toFixed(1)}%</td>`;
      return row;
    }));
    part("sum").textContent = `The output of class ${answer.label} is ${answer.output.toFixed(2)}: ` +
      `${answer.base.toFixed(2)}, its mean over the training data, and ${(answer.output - answer.base).toFixed(2)} from the pixels.`;
    page.answer = {...answer, pixels: drawn};
  }

  function soon() {
    if (!waiting) requestAnimationFrame(show);
    waiting = true;
  }

  function example() {
    const left = JSON.parse(live.example(number++));
    points.forEach((_, i) => { points[i] = left[of(i % WIDTH, Math.floor(i / WIDTH))]-- > 0; });
    show();
  }

  function draw(event) {
    const {width, height} = event.target.getBoundingClientRect();
    const to = [event.offsetX * WIDTH / width, event.offsetY * WIDTH / height], from = last || to;
    const steps = Math.ceil(Math.hypot(to[0] - from[0], to[1] - from[1])) || 1;
    for (let step = 0; step <= steps; step++) {
      const [x, y] = [0, 1].map((axis) => from[axis] + (to[axis] - from[axis]) * step / steps - 0.5);
      points.forEach((_, i) => { if (Math.hypot(i % WIDTH - x, Math.floor(i / WIDTH) - y) < PEN) points[i] = 1; });
    }
    last = to;
    soon();
  }

  part("start").onclick = start;
  part("example").onclick = example;
  part("clear").onclick = () => { points.fill(0); show(); };
  part("drawing").onpointerdown = draw;
  part("drawing").onpointermove = (event) => { if (event.buttons) draw(event); else last = null; };
  part("drawing").onpointerleave = () => { last = null; };
})();
