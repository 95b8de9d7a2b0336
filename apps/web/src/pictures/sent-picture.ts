import { useState } from 'preact/hooks';
import { type components, DarkroomError } from '../service/client';
import { pictureUrl } from '../service/reach';
import { sendFile } from '../service/send-file';
import { session } from '../session/session';
import { explain } from '../ui/notices';
import type { Size } from './crop';

/** A picture that a request names. */
export interface SentPicture {
  /** As requests name it. */
  url: string;
  /** Where this page reads it; undefined for another host, from which it may load nothing. */
  shownUrl?: string;
}

/** A picture that a drawing follows, with its ControlNet. */
export interface Control extends Omit<components['schemas']['UsedControl'], 'image'> {
  image: SentPicture;
}

/** A picture that was sent. */
export interface Upload extends SentPicture {
  size: Size;
}

/** Media types that the service takes. */
export const pictureTypes = 'image/png,image/jpeg,image/webp';

/** The service's own pictures, on any host, and those that are read from the store. */
const ownPattern = /(?:\/images\/[\w-]{24}\.\w+$|[?&]x-darkroom-picture=)/;

export const sentPicture = (url: string): SentPicture => ({
  url,
  ...(ownPattern.test(url) && { shownUrl: pictureUrl(url) }),
});

export const maybePicture = (url: string | null): SentPicture | undefined =>
  url === null ? undefined : sentPicture(url);

export const controlOf = ({ image, ...rest }: components['schemas']['UsedControl']): Control => ({
  ...rest,
  image: sentPicture(image),
});

/**
 * Sends a picture to draw from or to train on.
 * @param onProgress gets the part that was sent, from 0 to 1
 * @throws DarkroomError with the service's reason
 */
export async function uploadPicture(file: Blob, onProgress?: (part: number) => void): Promise<Upload> {
  const key = session.value?.key;
  if (key === undefined) throw new DarkroomError('', 401);
  const path = '/v1/uploads';
  const { url, width, height } = await sendFile<Size & { url: string }>({
    ...{ method: 'POST', path, key, file },
    ...(onProgress && { onProgress }),
  });
  return { ...sentPicture(url), size: { width, height } };
}

/** The upload of pictures, one after the other: the progress of one, and why it failed. */
export interface UploadState {
  part: number | undefined;
  problem: string;
  send: (...files: (File | undefined)[]) => void;
}

export function useUpload(onPicture: (picture: Upload) => void): UploadState {
  const [part, setPart] = useState<number | undefined>();
  const [problem, setProblem] = useState('');
  const send = async (files: readonly (File | undefined)[]): Promise<void> => {
    if (part !== undefined) return;
    setProblem('');
    try {
      for (const file of files) {
        if (!file) continue;
        setPart(0);
        onPicture(await uploadPicture(file, setPart));
      }
    } catch (error) {
      setProblem(explain(error));
    }
    setPart(undefined);
  };
  return { part, problem, send: (...files) => void send(files) };
}
