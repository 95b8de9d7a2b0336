import type { ImageQuality } from '@app/domain/http';

/** What a request in the shape of OpenAI's API says of its answer. */
export interface Wishes {
  stream: boolean;
  partialImages: number;
  responseFormat: string | undefined;
  /** In the words of answers. */
  quality: ImageQuality;
  safetyIdentifier: string | null;
}

/** Names that answers do not have. */
const shownQualities: Readonly<Record<string, ImageQuality>> = { auto: 'high', standard: 'high', hd: 'xhigh' };

/** @param body of JSON or a form, whose values are texts; it has been checked. An empty value is none. */
export function wishesOf(body: unknown): Wishes {
  const sent = body as Readonly<Record<string, string | number | boolean | null>>;
  const text = (name: string): string | undefined => (sent[name] ? String(sent[name]) : undefined);
  const quality = text('quality') ?? 'auto';
  return {
    stream: text('stream') === 'true',
    partialImages: Number(text('partial_images') ?? 0),
    responseFormat: text('response_format'),
    quality: shownQualities[quality] ?? (quality as ImageQuality),
    safetyIdentifier: text('safety_identifier') ?? text('user') ?? null,
  };
}
