/** The bundled demonstration model. */
export const standIn = 'shapes';

/** The models that it may stand in for if they are not installed and the operator allows it. */
export const standInFor: readonly string[] = ['sd1.5', 'sd2.1'];
