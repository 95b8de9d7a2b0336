export { hashFile, shortHash } from './content-hash';
export { formatBytes } from './disk-space';
export type { ModelProgress } from './model-progress';
export { ModelStore } from './model-store';
export type { InstalledModel } from './model-store';
export type { ModelDefaults } from '@app/diffusion/files';
export { ModelStoreError } from './model-store-error';
export type { VerifyReport } from './verify-model';
export { standIn, standInFor, stoodInFor } from './stand-in';
