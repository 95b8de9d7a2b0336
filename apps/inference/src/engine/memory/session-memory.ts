/**
 * Estimated memory of loaded files: the weights, and the copies in another order that the runtime's kernels need. Whole
 * bytes, as `GET /v1/workers` promises.
 */
export const memoryOfFiles = (fileBytes: number): number => Math.ceil(1.5 * fileBytes);

/** What the sessions of a model need besides. The bundled model, of 20 MB, takes 82 MB in all. */
export const sessionBytes = 50 * 2 ** 20;
