/** Shapes with a name, each with width divided by height; models of other native sizes come close to it. */
const ratioOfWord: Readonly<Record<string, number>> = { square: 1, portrait: 2 / 3, landscape: 3 / 2 };

export const isWord = (shape: string): boolean => shape in ratioOfWord;

/** Width divided by height of a word or of a ratio such as 16:9. */
export function ratioOfShape(shape: string): number {
  const [width, height] = shape.split(':').map(Number);
  return ratioOfWord[shape] ?? width / height;
}
