-- Numbers of the steps of partners' moves: a cell refuses a step, and what is written as a part of it, once it has seen a later one.
CREATE SEQUENCE move_steps;
