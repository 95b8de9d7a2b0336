import { laneCount } from '../lane';
import { Arena, Arenas, type CallBytes } from './arena';

type PartName = keyof CallBytes;

const ofEachPart = <T>(of: (name: PartName) => T): Record<PartName, T> => ({
  textEncoder: of('textEncoder'),
  unet: of('unet'),
  vaeDecoder: of('vaeDecoder'),
  upscaler: of('upscaler'),
});

/** The sessions of a part of a model. Models whose parts have the same id have them in common. */
export interface ModelPart {
  id: string;
  bytes: number;
}

/** What a model takes before it is drawn with, as estimated. */
export interface ModelSize {
  /** With all its parts. */
  bytes: number;
  parts?: Partial<Record<PartName, ModelPart>>;
}

/** What the sessions of a part take: themselves, and what their calls have left, by all threads and in each lane. */
class PartMemory {
  readonly whole = new Arena();
  readonly lanes = new Arena();

  constructor(readonly part?: ModelPart) {}

  get bytes(): number {
    return (this.part?.bytes ?? 0) + this.whole.bytes + laneCount * this.lanes.bytes;
  }
}

/** What a loaded model takes. A part that it has in common with another is the same object in both. */
export class ModelMemory {
  /** Of its calls, by all threads and in the lanes. */
  readonly arenas: Record<'whole' | 'lanes', Arenas>;
  private readonly ownBytes: number;
  private readonly parts: Record<PartName, PartMemory>;

  /** @param others what is loaded beside it */
  constructor({ bytes, parts = {} }: ModelSize, others: Iterable<ModelMemory> = []) {
    this.ownBytes = Object.values(parts).reduce((left, part) => left - part.bytes, bytes);
    const loaded = [...others].flatMap((other) => Object.values(other.parts));
    this.parts = ofEachPart((name) => {
      const part = parts[name];
      return (part && loaded.find((each) => each.part?.id === part.id)) ?? new PartMemory(part);
    });
    const arenasOf = (by: 'whole' | 'lanes') => ofEachPart((name) => this.parts[name][by]);
    this.arenas = { whole: new Arenas(1, arenasOf('whole')), lanes: new Arenas(laneCount, arenasOf('lanes')) };
  }

  /** Bytes of all these together, of which each part counts once. */
  static sum(models: Iterable<ModelMemory>): number {
    const all = [...models];
    const parts = new Set(all.flatMap((model) => Object.values(model.parts)));
    const own = all.reduce((sum, { ownBytes }) => sum + ownBytes, 0);
    return [...parts].reduce((sum, { bytes }) => sum + bytes, own);
  }
}
