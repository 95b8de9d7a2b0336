const { join } = require('node:path');
const { parentPort } = require('node:worker_threads');

/**
 * Starts a real engine thread, whose callers give up in the moment in which it says something: a drawing of the prompt
 * "until step 5" at that step, one of "until a picture" at its first picture. From the main thread the word would come
 * some steps later.
 */
const commands = new Map();
parentPort.on('message', (command) => commands.set(command.id, command));
const isEnough = { 'until step 5': ({ step }) => step >= 5, 'until a picture': ({ type }) => type === 'picture' };
parentPort.postMessage = new Proxy(parentPort.postMessage, {
  apply(post, port, args) {
    post.apply(port, args);
    const [message] = args;
    const { request, cancel } = commands.get(message.id) ?? {};
    if (isEnough[request?.prompt]?.(message)) Atomics.store(new Int32Array(cancel), 0, 1);
  },
});
require(join(__dirname, '../../dist/apps/inference/src/engine/engine-thread.js'));
