import { Webhook } from 'standardwebhooks';
import { WebhookVerificationError } from './errors.ts';
import { verifyWebhook } from './webhook.ts';

const secret = `whsec_${Buffer.from('0123456789abcdef0123456789abcdef').toString('base64')}`;
const body = JSON.stringify({ id: 'g', prompt: 'ein Kreis 🔴', status: 'succeeded' });

function signed(at = new Date(), text = body): Record<string, string> {
  return {
    'Webhook-Id': 'msg_1',
    'Webhook-Timestamp': String(Math.floor(at.getTime() / 1000)),
    'Webhook-Signature': new Webhook(secret).sign('msg_1', at, text),
  };
}

describe(verifyWebhook.name, () => {
  it('returns what was sent, from text or bytes and any kind of headers', () => {
    const generation = { id: 'g', prompt: 'ein Kreis 🔴', status: 'succeeded' };
    expect(verifyWebhook(secret, signed(), body)).toEqual(generation);
    expect(verifyWebhook(secret, new Headers(signed()), Buffer.from(body))).toEqual(generation);
    const { buffer } = new TextEncoder().encode(body);
    expect(verifyWebhook(secret, signed(), buffer)).toEqual(generation);
  });

  it('accepts any of several signatures, as sent during the rotation of a secret', () => {
    const headers = signed();
    headers['Webhook-Signature'] = `v1,${Buffer.alloc(32).toString('base64')} ${headers['Webhook-Signature']}`;
    expect(verifyWebhook(secret, headers, body)).toMatchObject({ id: 'g' });
  });

  it.each<[string, Record<string, string>, string]>([
    ['another body', signed(), body.replace('succeeded', 'failed')],
    ['an old message', signed(new Date(Date.now() - 6 * 60_000)), body],
    ['no signature', { ...signed(), 'Webhook-Signature': '' }, body],
    ['no headers', {}, body],
  ])('refuses %s', (_, headers, text) => {
    expect(() => verifyWebhook(secret, headers, text)).toThrow(WebhookVerificationError);
  });

  it.each([[JSON.parse(body)], [undefined], [null], [[1]]])('says that %j is no raw body', (parsed) => {
    const work = () => verifyWebhook(secret, signed(), parsed as string);
    expect(work).toThrow('The body of a webhook must be the raw body, bytes or text, not a parsed object.');
    expect(work).not.toThrow(WebhookVerificationError);
  });

  it.each(['', 'whsec_', 'whsec_no base64!'])('says that "%s" is no secret, before it reads the request', (wrong) => {
    expect(() => verifyWebhook(wrong, signed(), body)).toThrow(TypeError);
    expect(() => verifyWebhook(wrong, signed(), body)).toThrow(/^The secret of a webhook must be/);
  });
});
