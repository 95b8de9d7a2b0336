import { models } from '../models/models';
import type { Storage } from '../service/client';
import { client } from '../session/session';
import { Part } from '../ui/card';
import { sizeOf } from '../ui/units';
import { Loaded, usePolled } from '../ui/reading';
import { type Column, DataTable, Figures } from './tables';

const refreshMs = 5_000;

type KeyStorage = Storage['keys'][number];
const columns: Column<KeyStorage>[] = [
  ['Key', ({ key_name }) => key_name],
  ['Pictures', ({ picture_bytes }) => sizeOf(picture_bytes), 'number'],
  ['Weights', ({ weight_bytes }) => sizeOf(weight_bytes), 'number'],
  ['Records', ({ record_bytes }) => sizeOf(record_bytes), 'number'],
  ['Coming', ({ upload_bytes }) => sizeOf(upload_bytes), 'number'],
  ['Together', (key) => sizeOf(key.picture_bytes + key.weight_bytes + key.record_bytes + key.upload_bytes), 'number'],
  ['Limit', ({ limit_bytes }) => (limit_bytes === null ? 'none' : sizeOf(limit_bytes)), 'number'],
];

/** Bytes stored for each key, and free space. */
export function StorageView() {
  const storage = usePolled(() => client().operator.storage(), refreshMs);
  return <Loaded of={storage}>{(found) => <Stored storage={found} />}</Loaded>;
}

function Stored({ storage }: { storage: Storage }) {
  const { picture_bytes, weight_bytes, record_bytes, upload_bytes, keys } = storage;
  const { disk_free_bytes: free, disk_total_bytes: total } = storage;
  const figures = [
    ['Pictures', sizeOf(picture_bytes)],
    ['Weights', sizeOf(weight_bytes)],
    ['Records', sizeOf(record_bytes)],
    ['Coming', sizeOf(upload_bytes), 'uploads and pictures that wait'],
    ['Models', sizeOf(models.value.reduce((sum, { bytes }) => sum + bytes, 0))],
    ...(free === null || total === null ? [] : [['Free on the disk', sizeOf(free), `of ${sizeOf(total)}`] as const]),
  ] as const;
  return (
    <>
      <Part id="storage" title="Storage">
        <Figures figures={figures} />
      </Part>
      <Part id="storage-by-key" title="By key">
        <DataTable
          label="By key"
          empty="No key stores anything."
          columns={columns}
          rows={keys}
          keyOf={({ key_id }) => key_id}
        />
      </Part>
    </>
  );
}
