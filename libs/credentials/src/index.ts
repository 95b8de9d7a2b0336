export type { Ingredient, Manifest } from './c2pa';
export { ownCertificates } from './own-certificates';
export { CredentialsError } from './identity';
export type { Signing } from './identity';
export type { CredentialsReport, PictureReport } from './picture-report';
export { sourceTypes } from './picture-report';
export { PictureSigner } from './picture-signer';
export { PictureVerifier, UnreadableCredentialsError } from './picture-verifier';
