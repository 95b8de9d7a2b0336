export { changeKey, rotateKey, rotateWebhookSecret } from './change-key';
export type { KeySettings } from './change-key';
export { keyChannel } from './key-channel';
export { newApiKey } from './new-key';
export { revokeKey } from './revoke-key';
