import { type components, DarkroomError } from './client';
import { serviceUrl } from './reach';

interface SentFile {
  method: 'POST' | 'PUT';
  path: string;
  key: string;
  file: Blob;
  /** Gets the part that was sent, from 0 to 1. */
  onProgress?: (part: number) => void;
}

/**
 * Sends a file with progress, which `fetch` cannot report.
 * @throws DarkroomError with the service's reason
 */
export function sendFile<T>({ method, path, key, file, onProgress }: SentFile): Promise<T> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest();
    request.open(method, `${serviceUrl}${path}`);
    request.setRequestHeader('Authorization', `Bearer ${key}`);
    request.setRequestHeader('Content-Type', 'application/octet-stream');
    request.upload.onprogress = ({ loaded, total }) => onProgress?.(total > 0 ? loaded / total : 0);
    request.onerror = () => reject(new DarkroomError('', 0));
    request.onabort = request.onerror;
    request.onload = () => {
      const answer = jsonIn(request.responseText);
      if (request.status < 300 && answer) return resolve(answer as T);
      const { detail, code } = (answer ?? {}) as Partial<components['schemas']['Problem']>;
      reject(new DarkroomError(detail ?? `${request.status} ${request.statusText}`, request.status, code));
    };
    request.send(file);
  });
}

/** Undefined for a proxy's page. */
function jsonIn(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
