import type { IncomingMessage } from 'node:http';
import type { RequestHandler } from 'express';
import helmet from 'helmet';
import { docsPath } from '../docs/serve-docs';

/** Swagger UI carries styles in its page; nothing else may. */
const inlineStyles = ({ url = '' }: IncomingMessage): string =>
  url === docsPath || url.startsWith(`${docsPath}/`) ? "'unsafe-inline'" : "'self'";

/**
 * What tells a browser to run and load nothing but our own files. TLS is the proxy's: only where `publicUrl` says that there is one is
 * a browser told to come back by HTTPS alone, and for this host alone.
 */
export const securityHeaders = (publicUrl: string): RequestHandler =>
  helmet({
    contentSecurityPolicy: {
      directives: { 'style-src': ["'self'", inlineStyles], 'upgrade-insecure-requests': null },
    },
    strictTransportSecurity: publicUrl.startsWith('https:') && { includeSubDomains: false },
  });
