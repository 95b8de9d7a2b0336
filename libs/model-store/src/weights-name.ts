import { shortHash } from './content-hash';

/** `<model>@<hash>`, as in `served_by`. */
export function weightsName({ name, hash = '' }: { name: string; hash?: string | undefined }): string {
  return `${name}@${shortHash(hash)}`;
}
