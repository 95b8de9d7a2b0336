import type { ApiKey } from '@app/domain';
import type { StorageRow } from '../storage-use/storage-quota';

/** The key of a request, and what it had stored when the request came: one row tells both. */
export interface CallerKey extends ApiKey {
  readonly storage: StorageRow;
}
