import type { ApiKey } from '@app/domain';
import type { StorageRow } from './storage-quota';

/** The key of a request, and its storage use when the request came; one row has both. */
export interface CallerKey extends ApiKey {
  readonly storage: StorageRow;
}
