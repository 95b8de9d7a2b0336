export * from '../adapters/weights-error';
