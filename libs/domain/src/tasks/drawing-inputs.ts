/** A Fine-Tune that a Generation is drawn with. */
export interface UsedFinetune {
  id: string;
  scale: number;
}

/** The preprocessor that makes a ControlNet's map of a picture. */
export const preprocessors = ['canny'] as const;
export type Preprocessor = (typeof preprocessors)[number];

/** A ControlNet that a drawing follows. */
export interface UsedControl {
  /** URL of its map, or of the picture that the map is made of. */
  image: string;
  model: string;
  scale: number;
  /** The part of the steps in which it is followed, from 0 to 1. */
  start: number;
  end: number;
  preprocess: Preprocessor | null;
}

/** Where a picture stands in a larger one, of whose upper left corner. */
export interface PlaceInPicture {
  x: number;
  y: number;
}

/** What a drawing is made from besides its texts, with every default resolved. */
export interface DrawingInputs {
  finetunes?: readonly UsedFinetune[];
  /** URL of the picture that it starts from. */
  image?: string;
  strength?: number;
  /** URL of the picture that marks the part of `image` to repaint. */
  mask?: string;
  /** The part that the mask repaints, if not the white one. */
  maskOf?: 'transparent';
  control?: readonly UsedControl[];
  /** URLs of the pictures that the model looks at, in their order. */
  references?: readonly string[];
  /** `image` stands in a larger picture, in its middle if no place is named; what is around it is drawn. */
  outpaint?: true | PlaceInPicture;
  /** The quality of a JPEG or WebP, 0 to 100, if not the usual one. */
  compression?: number;
  /**
   * When the request names no shape: the fetched `image` decides the size by these, or else the first of `references`;
   * until then the drawing is square.
   */
  shapedBy?: { edge: number; multiple: number };
  /** The same of a version before `shapedBy`: sizes by shape. */
  sizes?: { square: { width: number; height: number } };
}

/** The pictures that a drawing is made from, each with the field that names it. */
export function picturesIn(inputs: DrawingInputs | null): { url: string; field: string }[] {
  const { image, mask, control = [], references = [] } = inputs ?? {};
  return [
    ...(image === undefined ? [] : [{ url: image, field: 'image' }]),
    ...(mask === undefined ? [] : [{ url: mask, field: 'mask' }]),
    ...control.map((each, index) => ({ url: each.image, field: `control[${index}].image` })),
    ...references.map((url, index) => ({ url, field: `references[${index}]` })),
  ];
}

/** The pictures that a Fine-Tune is trained on, each with the field that names it. */
export const picturesToLearn = (imagesUrl: readonly string[]): { url: string; field: string }[] =>
  imagesUrl.map((url, index) => ({ url, field: `images_url[${index}]` }));

/** JSON pointer to a picture's field, below its body. */
export const pointerToField = (field: string): string => `/${field.replace(/\[(\d+)\]/g, '/$1').replaceAll('.', '/')}`;
