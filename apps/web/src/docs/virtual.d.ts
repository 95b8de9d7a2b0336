declare module 'virtual:search-index' {
  const sections: readonly import('./search').Section[];
  export default sections;
}
