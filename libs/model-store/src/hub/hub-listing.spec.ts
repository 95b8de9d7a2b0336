import { ModelStoreError } from '../model-store-error';
import { parseListing } from './hub-listing';

const sha = 'a'.repeat(40);
const large = {
  rfilename: 'unet/weights.pb',
  size: 5,
  blobId: sha,
  lfs: { sha256: 'b'.repeat(64), size: 5, pointerSize: 134 },
};
const small = { rfilename: 'model_index.json', size: 3, blobId: sha };
const parse = (listing: unknown): unknown => parseListing(JSON.stringify(listing), 'a/b');

describe(parseListing.name, () => {
  it('takes sha256 of large files and the blob id of the others', () => {
    expect(parse({ sha, siblings: [large, small] })).toEqual({
      commit: sha,
      files: [
        { path: 'unet/weights.pb', size: 5, sha256: 'b'.repeat(64) },
        { path: 'model_index.json', size: 3, blobId: sha },
      ],
    });
  });

  it.each([
    ['not an object', null],
    ['without a commit', { siblings: [] }],
    ['a commit that is a path', { sha: '../../x', siblings: [] }],
    ['without files', { sha }],
    ['invalid files', { sha, siblings: [null] }],
    ['a file without a size', { sha, siblings: [{ rfilename: 'a', blobId: sha }] }],
    ['a negative size', { sha, siblings: [{ ...small, size: -1 }] }],
    ['a file without a checksum', { sha, siblings: [{ rfilename: 'a', size: 1 }] }],
    ['an invalid checksum', { sha, siblings: [{ ...small, blobId: 'xyz' }] }],
    ['a path that leaves the model', { sha, siblings: [{ ...small, rfilename: '../x' }] }],
  ])('refuses %s', (_, listing) => {
    expect(() => parse(listing)).toThrow(ModelStoreError);
  });

  it('rejects a body that is not JSON', () => {
    expect(() => parseListing('<html>', 'a/b')).toThrow('The listing of a/b is not JSON.');
  });
});
