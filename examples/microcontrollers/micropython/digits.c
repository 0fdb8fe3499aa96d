// A native module of MicroPython: digits.predict(bytes of 64 pixels from 0 to 16) is the digit.
//
// `python export.py` writes digits.h, and `make ARCH=armv6m MPY_DIR=FOLDER` a module digits.mpy, which is copied to the
// board: `mpremote cp digits.mpy :`.

#include "py/dynruntime.h"

#include "digits.h"

static mp_obj_t predict(mp_obj_t row) {
    mp_buffer_info_t buffer;
    mp_get_buffer_raise(row, &buffer, MP_BUFFER_READ);
    if (buffer.len != DIGITS_FEATURES * sizeof(digits_input)) {
        mp_raise_ValueError(MP_ERROR_TEXT("a row has 64 pixels of a byte each"));
    }
    return mp_obj_new_int(digits_predict((const digits_input *)buffer.buf));
}
static MP_DEFINE_CONST_FUN_OBJ_1(predict_obj, predict);

mp_obj_t mpy_init(mp_obj_fun_bc_t *self, size_t n_args, size_t n_kw, mp_obj_t *args) {
    MP_DYNRUNTIME_INIT_ENTRY
    mp_store_global(MP_QSTR_predict, MP_OBJ_FROM_PTR(&predict_obj));
    MP_DYNRUNTIME_INIT_EXIT
}
