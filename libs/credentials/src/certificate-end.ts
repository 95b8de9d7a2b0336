import { certificatesIn } from './pem';

/** When the certificate that signs ends: the first one of its file. @throws CredentialsError */
export async function endOfCertificate(path: string): Promise<Date> {
  const [leaf] = await certificatesIn({ path, name: 'The file of CREDENTIALS_CERTIFICATE' });
  return new Date(leaf.validTo);
}
