/** A picture: row-major, three bytes (red, green, blue) per pixel. */
export interface RgbImage {
  width: number;
  height: number;
  data: Uint8Array;
}

/**
 * Interleaves planes [3, height, width] into a picture.
 * @param toByte maps a plane's value to 0..255; the result is rounded and clamped
 */
export function fromPlanes(
  planes: Float32Array,
  width: number,
  height: number,
  toByte: (value: number) => number,
): RgbImage {
  const size = width * height;
  const data = new Uint8ClampedArray(size * 3);
  for (let channel = 0; channel < 3; channel++) {
    const plane = channel * size;
    for (let i = 0; i < size; i++) data[i * 3 + channel] = toByte(planes[plane + i]);
  }
  return { width, height, data: new Uint8Array(data.buffer) };
}
