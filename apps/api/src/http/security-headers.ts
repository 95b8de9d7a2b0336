import type { IncomingMessage, ServerResponse } from 'node:http';
import type { RequestHandler } from 'express';
import helmet from 'helmet';
import { docsPath } from '../docs/serve-docs';

type HeaderList = readonly (readonly [name: string, value: string])[];

/**
 * What tells a browser to run and load nothing but our own files. TLS is the proxy's: only where `publicUrl` says that there is one is
 * a browser told to come back by HTTPS alone, and for this host alone.
 */
export function securityHeaders(publicUrl: string): RequestHandler {
  const isSecure = publicUrl.startsWith('https:');
  const ofAll = headersWith("'self'", isSecure);
  // Swagger UI carries styles in its page; nothing else may.
  const ofDocs = headersWith("'unsafe-inline'", isSecure);
  return ({ url }, response, next) => {
    const headers = url === docsPath || url.startsWith(`${docsPath}/`) ? ofDocs : ofAll;
    for (const [name, value] of headers) response.setHeader(name, value);
    next();
  };
}

/** Helmet's headers, asked for once: they are the same for each request. */
function headersWith(styles: string, isSecure: boolean): HeaderList {
  const setHeaders = helmet({
    contentSecurityPolicy: {
      directives: { 'style-src': ["'self'", styles], 'upgrade-insecure-requests': null },
    },
    strictTransportSecurity: isSecure && { includeSubDomains: false },
  });
  const headers: [string, string][] = [];
  const response = {
    setHeader: (name: string, value: string) => headers.push([name, value]),
    removeHeader: () => undefined,
  };
  setHeaders({} as IncomingMessage, response as unknown as ServerResponse, (error?: unknown) => {
    if (error) throw error as Error;
  });
  return headers;
}
