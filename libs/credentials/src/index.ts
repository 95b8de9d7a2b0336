export type { Ingredient, Manifest } from './c2pa';
export { CredentialsError } from './errors';
export { ownCertificates } from './own-certificates';
export type { Signing } from './identity';
export type { CredentialsReport, PictureReport } from './picture-report';
export { sourceTypes } from './picture-report';
export { PictureSigner } from './picture-signer';
export { PictureVerifier, UnreadableCredentialsError } from './picture-verifier';
export { endOfCertificate } from './certificate-end';
