/* Memory: what stays resident, and where blocks lie. */
#include "suite.h"

const struct row memory_rows[] = {
    {0},
};
