/** The bundled demonstration model. */
export const standIn = 'shapes';

/** The models that it may stand in for if they are not installed and the operator allows it. */
export const standInFor: readonly string[] = ['sd1.5', 'sd2.1'];

/** The names that it stands in for among the installed models: none if it cannot be drawn with itself. */
export function stoodInFor(installed: readonly { name: string; hash?: string | undefined }[]): string[] {
  if (installed.find(({ name }) => name === standIn)?.hash === undefined) return [];
  return standInFor.filter((other) => !installed.some(({ name }) => name === other));
}
