import { UnprocessableError } from '@app/domain';
import { RoomReservedError, StorageQuota, type StorageRow } from './storage-quota';

describe(StorageQuota.name, () => {
  const quota = new StorageQuota({ storageMbPerKey: 0 });
  const megabytes = (count: number): number => count * 1e6;
  /** The row of a key that may store ten megabytes. */
  const row = (weights: number, uploads: number): StorageRow => ({
    max_storage_mb: 10,
    picture_bytes: '0',
    weight_bytes: String(megabytes(weights)),
    reserved_bytes: '0',
    record_bytes: '0',
    upload_bytes: String(megabytes(uploads)),
  });

  it.each([
    ['fits', row(7, 0), { bytes: megabytes(3) }, undefined],
    ['does not fit', row(8, 0), { bytes: megabytes(3) }, UnprocessableError],
    ['has an unknown size, where nothing fits', row(10, 0), {}, UnprocessableError],
    ['takes the place of a file', row(8, 0), { bytes: megabytes(9), replacedBytes: megabytes(8) }, undefined],
    [
      'fits once an upload has failed',
      row(8, 2),
      { bytes: megabytes(9), replacedBytes: megabytes(8) },
      RoomReservedError,
    ],
    [
      'is larger than the file it replaces and all room',
      row(8, 2),
      { bytes: megabytes(11), replacedBytes: megabytes(8) },
      UnprocessableError,
    ],
  ])('assertRoom decides about a file that %s', (_, of, file, refusal) => {
    const assert = (): void => quota.assertRoom(of, file);
    if (refusal) expect(assert).toThrow(refusal);
    else expect(assert).not.toThrow();
  });

  it('says what a key had before a request, although the counts have what it adds', () => {
    const after = { ...row(8, 0), reserved_bytes: String(megabytes(3)), record_bytes: String(megabytes(1)) };
    const refuse = (): void =>
      quota.assertRoomAfter(after, { reservedBytes: megabytes(2), recordBytes: megabytes(0.5) });
    expect(refuse).toThrow('has 9.5 MB: 0 MB of pictures, 8 MB of weights, 0.5 MB of records, 1 MB kept for pictures');
  });
});
