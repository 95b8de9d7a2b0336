/** The type of the box in which a file of any format has C2PA's manifests. Source: C2PA specification 2.2, 11.1.4.1 */
const storeType = Buffer.from('6332706100110010800000aa00389b71', 'hex');

/** Whether a file has Content Credentials. */
export const hasCredentials = (file: Buffer): boolean => file.includes(storeType);
