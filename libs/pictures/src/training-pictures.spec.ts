import { assertLearnable } from './training-pictures';

const edge = 64;
/** Pictures whose pixels all have one value, as a training reads them. */
const pictures = (values: readonly number[], width = 100, height = 80) =>
  values.map((value, i) => ({
    field: `images_url[${i}]`,
    picture: {
      ...{ width, height, sha256: `of file ${i}` },
      image: { width: edge, height: edge, data: new Uint8Array(edge * edge * 3).fill(value) },
    },
  }));

describe(assertLearnable.name, () => {
  it('takes four different ones, and others that are there again', () => {
    expect(() => assertLearnable(pictures([1, 2, 3, 4]))).not.toThrow();
    expect(() => assertLearnable(pictures([1, 2, 1, 3, 4, 4]))).not.toThrow();
  });

  it('refuses fewer than four different ones, whatever their files', () => {
    expect(() => assertLearnable(pictures([1, 2, 1, 2, 3]))).toThrow(
      'The picture in `images_url[2]` is the same as that in `images_url[0]`, and at least 4 different ones are needed.',
    );
  });

  it('refuses one that is too small, by its shorter edge', () => {
    expect(() => assertLearnable(pictures([1, 2, 3, 4], 64, 64))).not.toThrow();
    expect(() => assertLearnable(pictures([1, 2, 3, 4], 500, 63))).toThrow(
      'The picture in `images_url[0]` has 500 x 63 pixels, and one to train with has at least 64 on each edge.',
    );
  });
});
