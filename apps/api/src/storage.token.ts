/** Injects the storage of pictures. */
export const IMAGE_STORAGE = Symbol('IMAGE_STORAGE');
