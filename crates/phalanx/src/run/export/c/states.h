/* Writes the probability of each action of an agent, given the states of its members in their order. Returns
   how many actions there are; -1, and nothing is written, if there is no such agent or no such state. */
int phalanx_law(int agent, const unsigned char *states, double *probabilities);

