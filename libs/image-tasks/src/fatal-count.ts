/** Errors, or deaths of workers, after which a task fails for good. */
export const fatalCount = 5;
