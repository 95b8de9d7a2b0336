import { type AspectRatio, type Drawing, FieldProblems } from '@app/domain';
import { type InstalledModel, PictureSizes } from '@app/model-store';

/** What of a body says the shape of its drawing. */
export interface SentShape {
  aspect_ratio?: AspectRatio | [AspectRatio] | null | undefined;
  width?: number | null | undefined;
  height?: number | null | undefined;
}

export type Shape = Pick<Drawing, 'aspectRatio' | 'width' | 'height'>;

const edges = ['width', 'height'] as const;

/**
 * The shape that a body asks for; undefined where it names none.
 * @param model its name in the request
 * @param served the model that will draw it
 * @throws InvalidError for a size beside a ratio, half of a size, and one that the model does not draw
 */
export function askedShape(
  sent: SentShape,
  { pointer, model, served }: { pointer: string; model: string; served: InstalledModel },
): Shape | undefined {
  const [aspectRatio] = [sent.aspect_ratio].flat();
  const sizes = new PictureSizes(model, served);
  const [width, height] = edges.map((edge) => sent[edge] ?? undefined);
  if (width === undefined && height === undefined)
    return aspectRatio ? { aspectRatio, ...sizes.ofRatio(aspectRatio) } : undefined;
  const problems = new FieldProblems();
  for (const edge of edges)
    if ((sent[edge] ?? undefined) === undefined) problems.add(pointer, edge, 'is needed beside the other edge');
  if (aspectRatio)
    problems.add(pointer, 'aspect_ratio', 'cannot be sent with "width" and "height"; leave it or them out');
  problems.throwIfAny();
  const size = { width: width!, height: height! };
  for (const { edge, problem } of sizes.problemsOf(size)) problems.add(pointer, edge, problem);
  problems.throwIfAny();
  return { aspectRatio: null, ...size };
}
