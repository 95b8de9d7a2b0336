import { models } from '../models/models';
import type { Storage } from '../service/client';
import { client } from '../session/session';
import { texts } from '../texts';
import { sizeOf } from '../ui/size';
import { DataTable } from './data-table';
import { Loaded } from './loaded';
import { usePolled } from './polled';

const refreshMs = 5_000;

type KeyStorage = Storage['keys'][number];
const usedBy = ({ picture_bytes, weight_bytes, upload_bytes }: KeyStorage): number =>
  picture_bytes + weight_bytes + upload_bytes;

/** What files take, of which key, and the room that is left. */
export function StorageView() {
  const storage = usePolled(() => client().operator.storage(), refreshMs);
  return <Loaded of={storage}>{(found) => <Stored storage={found} />}</Loaded>;
}

function Stored({ storage }: { storage: Storage }) {
  const { picture_bytes, weight_bytes, upload_bytes, disk_free_bytes, disk_total_bytes, keys } = storage;
  const figures = [
    [texts.storage.pictures, sizeOf(picture_bytes)],
    [texts.storage.weights, sizeOf(weight_bytes)],
    [texts.storage.uploads, sizeOf(upload_bytes)],
    [texts.storage.models, sizeOf(models.value.reduce((sum, { bytes }) => sum + bytes, 0))],
    ...(disk_free_bytes === null || disk_total_bytes === null
      ? []
      : [[texts.storage.disk, sizeOf(disk_free_bytes), texts.storage.ofDisk(sizeOf(disk_total_bytes))] as const]),
  ] as const;
  return (
    <>
      <section aria-labelledby="storage">
        <h2 id="storage">{texts.storage.title}</h2>
        <dl class="figures">
          {figures.map(([name, value, more]) => (
            <div key={name} class="panel">
              <dt>{name}</dt>
              <dd>
                {value} {more && <small>{more}</small>}
              </dd>
            </div>
          ))}
        </dl>
      </section>
      <section aria-labelledby="storage-by-key">
        <h2 id="storage-by-key">{texts.storage.byKey}</h2>
        {keys.length === 0 ? <p class="empty">{texts.storage.empty}</p> : <ByKey keys={keys} />}
      </section>
    </>
  );
}

function ByKey({ keys }: { keys: readonly KeyStorage[] }) {
  const columns = [
    texts.operator.key,
    texts.storage.pictures,
    texts.storage.weights,
    texts.storage.uploads,
    texts.storage.all,
    texts.storage.limit,
  ];
  return (
    <DataTable label={texts.storage.byKey} columns={columns}>
      {keys.map((key) => (
        <tr key={key.key_id}>
          <td>{key.key_name}</td>
          <td class="number">{sizeOf(key.picture_bytes)}</td>
          <td class="number">{sizeOf(key.weight_bytes)}</td>
          <td class="number">{sizeOf(key.upload_bytes)}</td>
          <td class="number">{sizeOf(usedBy(key))}</td>
          <td class="number">{key.limit_bytes === null ? texts.storage.noLimit : sizeOf(key.limit_bytes)}</td>
        </tr>
      ))}
    </DataTable>
  );
}
