import { eventStoreContract } from '../contracts/eventStore.ts'
import { openEmbedded } from '../contracts/eventStore/openEmbedded.ts'

eventStoreContract('embedded', () => Promise.resolve(openEmbedded()))
