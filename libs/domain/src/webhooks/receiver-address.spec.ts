import { UnprocessableError } from '../errors/domain-error';
import { assertReceiverAllowed, isRefusedAddress } from './receiver-address';

describe(isRefusedAddress.name, () => {
  it.each([
    ...['127.0.0.1', '10.1.2.3', '172.16.0.1', '192.168.1.1', '169.254.169.254', '100.100.100.200', '0.0.0.0'],
    ...['168.63.129.16', '192.0.2.1', '198.18.0.1', '224.0.0.1', '255.255.255.255'],
    ...['::', '::1', 'fe80::1', 'fe80::1%eth0', 'fd00:ec2::254', 'ff02::1', '2001:db8::1', '100::1', '4000::1'],
    // IPv4-compatible, mapped, NAT64, 6to4 and Teredo.
    ...[
      '::7f00:1',
      '::10.0.0.1',
      '::8.8.8.8',
      '::ffff:127.0.0.1',
      '::ffff:7f00:1',
      '::ffff:a00:1',
      '0:0:0:0:0:ffff:0:0',
    ],
    ...['64:ff9b::7f00:1', '64:ff9b::10.0.0.1', '64:ff9b::a9fe:a9fe', '64:ff9b::', '64:ff9b:1::1', '2002:7f00:1::1'],
    ...['2001:0:4136:e378:8000:63bf:3fff:fdd2', '2001::1', '', 'localhost', '127.1'],
  ])('refuses %p', (address) => expect(isRefusedAddress(address)).toBe(true));

  it.each([
    ...['8.8.8.8', '1.1.1.1', '172.15.255.255', '172.32.0.0', '168.63.129.15', '100.63.255.255', '223.255.255.255'],
    ...['2606:4700:4700::1111', '2a00:1450:4001::200e', '::ffff:8.8.8.8', '::ffff:808:808', '64:ff9b::808:808'],
  ])('takes %p', (address) => expect(isRefusedAddress(address)).toBe(false));
});

describe(assertReceiverAllowed.name, () => {
  const refusal = (webhook: string): unknown => {
    try {
      assertReceiverAllowed(webhook, false);
    } catch (error) {
      return error;
    }
    return undefined;
  };

  it.each([
    ...[
      '127.0.0.1',
      '127.1',
      '127.0.1',
      '127.0.0.1.',
      '2130706433',
      '0x7f000001',
      '0177.0.0.1',
      '0x7f.0.0.1',
      '0.0.0.0',
    ],
    ...['①②⑦.0.0.1', '168.63.129.16', '[::1]', '[::ffff:127.0.0.1]', '[::127.0.0.1]', '[64:ff9b::7f00:1]', '[::]'],
  ])('refuses %s and names the setting and the field', (host) => {
    const error = refusal(`https://${host}:8443/hook`);
    expect(error).toBeInstanceOf(UnprocessableError);
    expect(error).toMatchObject({
      code: 'WebhookAddressRefused',
      message: expect.stringContaining('WEBHOOK_ALLOW_PRIVATE') as string,
      fields: [{ pointer: '/webhook' }],
    });
  });

  it('leaves names and public addresses alone', () => {
    for (const host of ['example.com', 'local.example', '10.example.com', '8.8.8.8', '[2606:4700::1111]'])
      expect([host, refusal(`http://${host}/`)]).toEqual([host, undefined]);
  });

  it('refuses names that lead nowhere else', () => {
    for (const host of ['localhost', 'LocalHost.', 'a.localhost', 'shop', 'nas.local', 'db.internal', 'a.home.arpa'])
      expect([host, refusal(`http://${host}/`)]).toEqual([host, expect.anything()]);
  });

  it('refuses nothing where the operator allows it, nor where there is no webhook', () => {
    expect(() => assertReceiverAllowed('http://127.0.0.1/', true)).not.toThrow();
    for (const none of [null, undefined]) expect(() => assertReceiverAllowed(none, false)).not.toThrow();
  });
});
