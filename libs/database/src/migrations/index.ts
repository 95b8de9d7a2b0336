import { Initial1795200000000 } from './1795200000000-initial';

/** Every migration in order; a new one is added at the end. */
export const migrations = [Initial1795200000000];
