import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const settings = `[tsa]
default_tsa = clock
[clock]
serial = tsa.serial
signer_cert = tsa.pem
certs = tsa-authority.pem
signer_key = tsa.key
signer_digest = sha256
default_policy = 1.2.3.4
digests = sha256
accuracy = secs:1
`;
const extensions = `basicConstraints=critical,CA:FALSE
keyUsage=critical,digitalSignature
extendedKeyUsage=critical,timeStamping
subjectKeyIdentifier=hash
authorityKeyIdentifier=keyid
`;

/** OpenSSL's time stamp server, in a folder of its own or another's. */
export function writeTimeStampServer(folder: string): {
  /** The certificate of its authority. */
  authority: string;
  answer: (request: Buffer) => Buffer;
} {
  const at = (name: string): string => join(folder, name);
  const openssl = (...args: string[]): void => void execFileSync('openssl', args, { cwd: folder, stdio: 'ignore' });
  const newKey = ['-newkey', 'rsa:2048', '-nodes'];
  openssl(
    ...['req', '-x509', ...newKey, '-days', '4000', '-keyout', 'tsa-authority.key', '-out', 'tsa-authority.pem'],
    ...['-subj', '/O=A tester/CN=An authority of clocks', '-addext', 'keyUsage=critical,keyCertSign'],
  );
  openssl('req', ...newKey, '-keyout', 'tsa.key', '-out', 'tsa.csr', '-subj', '/O=A tester/CN=A clock');
  writeFileSync(at('tsa.ext'), extensions);
  openssl(
    ...['x509', '-req', '-in', 'tsa.csr', '-CA', 'tsa-authority.pem', '-CAkey', 'tsa-authority.key'],
    ...['-CAcreateserial', '-days', '3000', '-extfile', 'tsa.ext', '-out', 'tsa.pem'],
  );
  writeFileSync(at('tsa.conf'), settings);
  writeFileSync(at('tsa.serial'), '01');
  return {
    authority: at('tsa-authority.pem'),
    answer: (request) => {
      writeFileSync(at('request.tsq'), request);
      openssl('ts', '-reply', '-config', 'tsa.conf', '-queryfile', 'request.tsq', '-out', 'answer.tsr');
      return readFileSync(at('answer.tsr'));
    },
  };
}
