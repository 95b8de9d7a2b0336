import { serviceUrl } from './address';
import { DarkroomError } from './client';
import type { components, Finetune } from './client';

/**
 * Uploads weights and tells how far it is, which `fetch` cannot.
 * @param onProgress gets the part that was sent, from 0 to 1.
 * @throws DarkroomError with the service's reason.
 */
export function uploadWeights(
  key: string,
  finetuneId: string,
  file: File,
  onProgress: (part: number) => void,
): Promise<Finetune> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open('PUT', `${serviceUrl}/v1/finetunes/${finetuneId}/weights`);
    request.setRequestHeader('Authorization', `Bearer ${key}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0);
    request.onerror = () => reject(new DarkroomError('', 0));
    request.onabort = request.onerror;
    request.onload = () => {
      const answer = jsonIn(request.responseText);
      if (request.status < 300 && answer) return resolve(answer as Finetune);
      const { detail, code } = (answer ?? {}) as Partial<components['schemas']['Problem']>;
      reject(new DarkroomError(detail ?? `${request.status} ${request.statusText}`, request.status, code));
    };
    request.send(file);
  });
}

/** What an answer says; undefined for a proxy's page. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
