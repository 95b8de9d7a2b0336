import type { Request } from 'express';

interface RouterLayer {
  route?: { methods: Record<string, boolean> };
  match(path: string): boolean;
}

/** Methods with a route at the request's path, in upper case; empty if there is no route at all. */
export function allowedMethods(request: Request): string[] {
  const { stack } = request.app.router as unknown as { stack: RouterLayer[] };
  const methods = stack.flatMap((layer) =>
    layer.route && layer.match(request.path) ? Object.keys(layer.route.methods) : [],
  );
  const upper = new Set(methods.filter((method) => method !== '_all').map((method) => method.toUpperCase()));
  if (upper.has('GET')) upper.add('HEAD');
  return [...upper].sort();
}
