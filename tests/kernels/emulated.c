/* The functions of cpu.c in a process of another processor; emulated.py calls them through its standard input and
 * output.
 *
 * A request is a list of 64-bit integers: the number of the function, that of the instruction set, blocks of memory,
 * addresses inside blocks, arguments. A block is its size, then its bytes. An address is three numbers: the block
 * and the position where it stands, and the block that it is the address of. An argument is two numbers: 1 and a
 * block, or 0 and a value. The answer is what the function returns, then the bytes of all blocks that are
 * arguments. */

#include "../../src/pyelmo/kernels/cpu/cpu.c"

#include <stdio.h>

enum { MOST = 64 };

static void get(void *to, size_t bytes) {
    if (fread(to, 1, bytes, stdin) != bytes) exit(0);
}

static int64_t number(void) {
    int64_t value;
    get(&value, sizeof(value));
    return value;
}

static int64_t call(int64_t function, int isa, const int64_t *a) {
#define AT(k) (void *)a[k]
    switch (function) {
        case 0: return elmo_supported((int)a[0]);
        case 1: return elmo_lanes(isa);
        case 2: return elmo_group(isa);
        case 3: return elmo_linear(isa, AT(0), AT(1), AT(2), a[3], a[4], AT(5));
        case 4: return elmo_highway(isa, AT(0), AT(1), AT(2), a[3]);
        case 5:
            return elmo_char_features(isa, AT(0), a[1], a[2], AT(3), a[4], a[5], AT(6), AT(7), AT(8), (int)a[9], AT(10),
                                      a[11]);
        default: return elmo_lstm(isa, AT(0), AT(1), AT(2), a[3], AT(4), a[5], AT(6), AT(7));
    }
}

int main(void) {
    for (;;) {
        char *blocks[MOST];
        int64_t sizes[MOST], arguments[MOST], returned[MOST];
        int64_t function = number();
        int isa = (int)number();
        int64_t count = number();
        if (count > MOST) exit(1);
        for (int64_t k = 0; k < count; k++) {
            sizes[k] = number();
            blocks[k] = malloc(sizes[k] ? sizes[k] : 1);
            get(blocks[k], sizes[k]);
        }
        for (int64_t left = number(); left > 0; left--) {
            char *where = blocks[number()];
            where += number();
            memcpy(where, &blocks[number()], sizeof(char *));
        }
        int64_t given = number();
        for (int64_t k = 0; k < given; k++) {
            int is_block = number() == 1;
            int64_t value = number();
            returned[k] = is_block ? value : -1;
            arguments[k] = is_block ? (int64_t)blocks[value] : value;
        }
        int64_t status = call(function, isa, arguments);
        fwrite(&status, sizeof(status), 1, stdout);
        for (int64_t k = 0; k < given; k++)
            if (returned[k] >= 0) fwrite(blocks[returned[k]], 1, sizes[returned[k]], stdout);
        fflush(stdout);
        for (int64_t k = 0; k < count; k++) free(blocks[k]);
    }
}
