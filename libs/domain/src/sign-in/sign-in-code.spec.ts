import { hashOfSignInCode, newSignInCode, openSealedToken } from './sign-in-code';

describe(newSignInCode.name, () => {
  const token = 'dr_0123456789ab_secret';

  it('seals a token that only its code opens', () => {
    const { code, row } = newSignInCode(token);
    expect(openSealedToken(code, row.sealedToken)).toBe(token);
    expect(() => openSealedToken(newSignInCode(token).code, row.sealedToken)).toThrow();
    expect(row.sealedToken.includes(token)).toBe(false);
  });

  it('is found by its hash', () => {
    const { code, row } = newSignInCode(token);
    expect(hashOfSignInCode(code)?.equals(row.hash)).toBe(true);
    for (const other of ['', code.slice(1), `${code}a`, `${code.slice(1)}+`])
      expect(hashOfSignInCode(other)).toBeUndefined();
  });
});
