import sharp from 'sharp';

/** Prompts that show the abilities of the bundled model, with seeds. */
export const examples = [
  { prompt: 'a red circle on a blue background', seed: 1 },
  { prompt: 'a glossy green star on a white background', seed: 7 },
  { prompt: 'three glossy purple circles on a gradient orange background', seed: 1 },
  { prompt: 'an outlined pink heart on a black background', seed: 1 },
  { prompt: 'a big orange hexagon on a dotted cyan background', seed: 1 },
  { prompt: 'a yellow moon above a purple diamond on a white background', seed: 11 },
  { prompt: 'a white cross on a striped red background', seed: 1 },
  { prompt: 'a cyan square left of a red triangle on a gray background', seed: 4 },
] as const;

/** Pixels. */
const cellEdge = 256;
const gap = 8;
const columns = 4;

/** Writes one picture file with all pictures, row by row; its ending says the format. */
export async function writeSheet(file: string, pictures: readonly Uint8Array[]): Promise<void> {
  const cells = await Promise.all(
    pictures.map((picture) => sharp(picture).resize(cellEdge, cellEdge, { fit: 'inside' }).png().toBuffer()),
  );
  const { width, height } = await sharp(cells[0]).metadata();
  const rows = Math.ceil(cells.length / columns);
  await sharp({
    create: {
      width: columns * (width + gap) - gap,
      height: rows * (height + gap) - gap,
      channels: 3,
      background: 'white',
    },
  })
    .composite(
      cells.map((input, index) => ({
        input,
        left: (index % columns) * (width + gap),
        top: Math.floor(index / columns) * (height + gap),
      })),
    )
    .toFile(file);
}
