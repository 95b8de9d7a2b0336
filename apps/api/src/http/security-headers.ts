import type { IncomingMessage } from 'node:http';
import helmet from 'helmet';
import { docsPath } from '../docs/serve-docs';

/** Swagger UI carries styles in its page; nothing else may. */
const inlineStyles = ({ url = '' }: IncomingMessage): string =>
  url === docsPath || url.startsWith(`${docsPath}/`) ? "'unsafe-inline'" : "'self'";

/** What tells a browser to run and load nothing but our own files. Plain HTTP stays plain: TLS is the proxy's. */
export const securityHeaders = helmet({
  contentSecurityPolicy: {
    directives: { 'style-src': ["'self'", inlineStyles], 'upgrade-insecure-requests': null },
  },
});
