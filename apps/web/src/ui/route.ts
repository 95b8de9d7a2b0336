import { signal } from '@preact/signals';

/** Anything else behind `#`, such as a sign-in code, is no route. */
const routeOf = (): string[] =>
  location.hash.startsWith('#/') ? location.hash.slice(2).split('/').filter(Boolean) : [];

/** The parts of the address behind `#/`. */
export const route = signal(routeOf());

addEventListener('hashchange', () => (route.value = routeOf()));

export function go(path: string): void {
  location.hash = `#/${path}`;
}
