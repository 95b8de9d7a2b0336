/**
 * Loaded into a process before all else: two names resolve as an attacker's would. `rebind.test` is a public address when it
 * is asked for first and loopback the next time, and so on; `mixed.test` is both at once.
 */
const dns = require('node:dns');
const { syncBuiltinESMExports } = require('node:module');

/** Of a block that was given to nobody: public by its form, and nowhere. */
const outside = { address: '3ffe::1', family: 6 };
const loopback = { address: '127.0.0.1', family: 4 };
const lookup = dns.lookup;
let asked = 0;

dns.lookup = (hostname, options, callback) => {
  if (!['rebind.test', 'mixed.test'].includes(hostname)) return lookup(hostname, options, callback);
  const answers = hostname === 'mixed.test' ? [outside, loopback] : [asked++ % 2 ? loopback : outside];
  const answer = typeof options === 'function' ? options : callback;
  if (options.all) process.nextTick(answer, null, answers);
  else process.nextTick(answer, null, answers[0].address, answers[0].family);
};
const lookupLater = dns.promises.lookup;
dns.promises.lookup = (hostname, options = {}) =>
  ['rebind.test', 'mixed.test'].includes(hostname)
    ? new Promise((resolve, reject) =>
        dns.lookup(hostname, options, (error, found, family) =>
          error ? reject(error) : resolve(options.all ? found : { address: found, family }),
        ),
      )
    : lookupLater(hostname, options);
syncBuiltinESMExports();
