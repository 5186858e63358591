import { openEventStore } from '../../../src/adapters/embedded/eventStore/index.ts'

const [, , root = ''] = process.argv
openEventStore({ dir: root })
process.exit() // without the checkpoint of a stop
