import type { RgbImage } from '../engine/engine-protocol';
import { dotsOf, widthOf } from './block-letters';

/** Letters per line of the prompt, and number of lines. */
const lineLength = 20;
const maxLines = 4;
/** Pixels of a dark and a light stripe of the hatching together, along a row. */
const hatching = 46;
/** Pixels of a dot of a letter, and from one line of the prompt to the next. */
const dots = { title: 10, line: 4, advance: 36 };

type Color = readonly [red: number, green: number, blue: number];
const red: Color = [0xb0, 0x00, 0x20];
const dark: Color = [0x22, 0x22, 0x22];

/** A hatched picture with the word SANDBOX and the first words of the prompt; its color depends on the seed. */
export function markedPicture(
  { prompt, width, height }: { prompt: string; width: number; height: number },
  seed: number,
): RgbImage {
  const data = new Uint8Array(width * height * 3);
  const hue = (seed * 137) % 360;
  const stripes = [colorOf(hue, 0.76), colorOf(hue, 0.82)];
  const paint = (x: number, y: number, color: Color): void => data.set(color, (y * width + x) * 3);
  for (let y = 0; y < height; y++)
    for (let x = 0; x < width; x++) paint(x, y, stripes[(x + y) % hatching < hatching / 2 ? 0 : 1]);
  /** Writes a text in the middle of the picture. */
  const write = (text: string, top: number, dot: number, color: Color): void => {
    const left = Math.round((width - widthOf(text) * dot) / 2);
    for (const { row, column } of dotsOf(text))
      for (let y = 0; y < dot; y++)
        for (let x = 0; x < dot; x++) paint(left + column * dot + x, top + row * dot + y, color);
  };
  const middle = Math.round(height / 2);
  write('SANDBOX', middle - 80, dots.title, red);
  linesOf(prompt).forEach((line, index) => write(line, middle + 24 + index * dots.advance, dots.line, dark));
  return { width, height, data };
}

/** The first words, in lines; any other characters become spaces. */
function linesOf(prompt: string): string[] {
  const lines: string[] = [];
  for (const word of prompt.match(/[\p{L}\p{N}]+/gu) ?? []) {
    const cut = [...word].slice(0, lineLength).join('');
    const last = lines.at(-1);
    if (last !== undefined && last.length + 1 + cut.length <= lineLength) lines[lines.length - 1] = `${last} ${cut}`;
    else lines.push(cut);
    if (lines.length > maxLines) break;
  }
  return lines.slice(0, maxLines);
}

/**
 * The color of a hue in degrees and a lightness from 0 to 1, at a saturation of 0.6.
 * Source: CSS Color Module Level 4, 7.1, "Converting HSL Colors to sRGB".
 */
function colorOf(hue: number, lightness: number): Color {
  const amplitude = 0.6 * Math.min(lightness, 1 - lightness);
  const channel = (n: number): number => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (lightness - amplitude * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [channel(0), channel(8), channel(4)];
}
