import type { Document } from 'mongodb'

/** Whether the server that said hello writes to several members: one of a replica set has its name, a `mongos` a message. */
export const isReplicated = ({ setName, msg }: Document): boolean =>
  setName !== undefined || msg === 'isdbgrid'
