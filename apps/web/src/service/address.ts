/** Where the service is: this page is its root, also below a path of a proxy. */
export const serviceUrl = new URL('.', document.baseURI).href.replace(/\/$/, '');

/**
 * The address of a picture on the host that this page came from. Records name it by the service's public address, which
 * may be another name of the same host, and the page may load nothing from elsewhere.
 */
export function pictureUrl(url: string): string {
  return `${serviceUrl}/images/${url.slice(url.lastIndexOf('/') + 1)}`;
}
